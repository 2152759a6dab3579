"""Will training methods be told apart on these labels? SFT and GRPO side by side, and the analyses around them.

The package is reserved for the comparison of supervised fine-tuning with reinforcement learning on one
labelled file: same model, same rows, same budget, one scorer for evaluation and reward, and every difference
in score set against the ceiling that the label noise allows (:mod:`audit`). It holds no code yet. It may use
``audit``'s public names, never ``relabel``'s: the two meet through a file.
"""
