"""The small Stable Diffusion that ships with the project, and how it is made.

Everything needed to make the weights again is here: a renderer of captioned scenes, the training of the VAE, of the
UNet with its text encoder and of an independent judge, and the evaluation. The weights themselves lie in
``data/models/bundled`` and are reached by a path, never by an import.

Light modules, safe to import anywhere (no torch, numpy or Pillow): `vocabulary`, `scenes`, `captions`.
Heavy ones, for training and evaluation only: everything else.
"""
