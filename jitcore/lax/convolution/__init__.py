"""Convolutions: the general one and its special cases, and what is made of patches.

In: images and filters, with dimension numbers. Out: feature maps, patches, shapes.

Modules:
    general  Convolution: `conv_general_dilated` and its special cases.
    patches  Convolutions by patches: each place's window as features, filters that differ from place to
             place; and the shapes of convolutions and window reductions.
"""
