"""
A noisy photograph, by its own patches
======================================

One picture is enough: its windows of 8×8 are thousands of small matrices, and the same edges and textures
come again and again. A mixture over them, fitted to the noisy picture itself, tells what a window looks like
without noise.
"""

# %%
# A photograph that comes with scikit-learn, in grey, and noise that is added to it.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

photo = load_sample_image("china.jpg")[60:252, 140:460].mean(axis=2) / 255
noisy = photo + np.random.default_rng(0).normal(scale=0.12, size=photo.shape)

# %%
# One call. The noise is estimated unless ``sigma`` says it.
without = matmix.denoise(noisy)


def decibels(picture):
    """The peak signal-to-noise ratio."""
    return -10 * np.log10(np.mean((picture - photo) ** 2))


print(f"estimated noise {matmix.estimate_sigma(noisy[None]):.3f}, added 0.120")
print(f"{decibels(noisy):.1f} dB before, {decibels(without):.1f} dB after")

# %%
# The whole, and a part of it closely.
fig, axes = plt.subplots(2, 3, figsize=(11, 5.4), layout="constrained", height_ratios=(1, 1.1))
names = ("photograph", f"with noise: {decibels(noisy):.1f} dB", f"denoised: {decibels(without):.1f} dB")
for column, name, picture in zip(axes.T, names, (photo, noisy, without), strict=True):
    column[0].imshow(picture, cmap="gray", vmin=0, vmax=1)
    column[0].set_title(name)
    column[1].imshow(picture[60:130, 110:220], cmap="gray", vmin=0, vmax=1)
    for ax in column:
        ax.set(xticks=[], yticks=[])
plt.show()

# %%
# What the mixture has learned are the kinds of windows there are: flat ones, edges in rows and in columns,
# textures. Drawn from each component:
denoiser = matmix.PatchDenoiser(16, random_state=0).fit_noisy(noisy[None])
drawn, components = denoiser.mixture_.sample(600, 0, False)
drawn = drawn.reshape(600, 8, 8)
fig, axes = plt.subplots(4, 12, figsize=(11, 3.9), layout="constrained")
strong = np.argsort([-drawn[components == k].std() if (components == k).sum() >= 4 else 0 for k in range(16)])
for column, k in zip(axes.T, strong, strict=False):
    for ax, window in zip(column, drawn[components == k][:4], strict=False):
        ax.imshow(window, cmap="gray", vmin=-0.4, vmax=0.4)
        ax.set(xticks=[], yticks=[])
plt.show()
