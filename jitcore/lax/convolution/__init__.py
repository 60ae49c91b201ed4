"""Convolutions: the primitive with its rules, and what is made of it.

In: images and filters. Out: images.

Modules:
    conv         Convolution: `conv_general_dilated` and its special cases.
    conv_shapes  Convolutions by patches: each place's window as features, filters that differ from place to
                 place; and the shapes of convolutions and window reductions.
"""
