"""
Missing pixels
==============

Cells that were not observed are left out of the likelihood, exactly, and nothing is filled in before the fit.
A fitted model then tells what they may have been, and how sure that is.
"""

# %%
# Six in ten pixels of every digit are gone, and no complete digit is left to learn from.
import matmix
import matplotlib.pyplot as plt
import numpy as np

clean, y = matmix.datasets.load_digits28(return_X_y=True)
clean = clean[::2, 2:26, 2:26] / 255
rng = np.random.default_rng(0)
broken = np.where(rng.random(clean.shape) < 0.6, np.nan, clean)

# %%
# ``missing="nan"`` says that NaN is no mistake.
model = matmix.Mixture(4, rank=6, missing="nan", tol=1e-3, random_state=0).fit(broken)
filled, deviation = model.impute(broken, return_std=True)
gone = np.isnan(broken)


def error(guess):
    """Root mean square error over the missing pixels."""
    return np.sqrt(np.mean((guess - clean)[gone] ** 2))


print(f"error of the missing pixels: {error(filled):.3f}")
print(f"of the mean of each pixel:   {error(np.broadcast_to(np.nanmean(broken, axis=0), clean.shape)):.3f}")
inside = np.abs(filled - clean)[gone] < 1.96 * deviation[gone]
print(f"true values within ±1.96 deviations: {inside.mean():.0%}")

# %%
# Digits, what was left of them, what the model fills in, and how unsure it is of each pixel: black cells were
# observed, bright ones could as well be ink as paper. Digits are not as Gaussian as the model would have them,
# so that a little less than 95 % lie within the interval.
shown = np.arange(10) * 50 + 3
fig, axes = plt.subplots(4, 10, figsize=(10, 4.2), layout="constrained")
masked = plt.get_cmap("gray").with_extremes(bad="#c96a4a")
rows = [
    ("digit", clean, "gray"),
    ("observed", broken, masked),
    ("filled in", filled, "gray"),
    ("deviation", deviation, "magma"),
]
for line, (name, pictures, cmap) in zip(axes, rows, strict=True):
    line[0].set_ylabel(name)
    for ax, picture in zip(line, pictures[shown], strict=True):
        ax.imshow(picture, cmap=cmap, vmin=0, vmax=0.35 if name == "deviation" else 1)
        ax.set(xticks=[], yticks=[])
plt.show()

# %%
# Where a whole corner is missing, one guess hides how many there are. Draws of all missing cells together
# show them.
halves = clean[[155, 256, 405]].copy()
halves[:, 12:, 12:] = np.nan
draws = model.impute(halves, draws=6, random_state=0)
fig, axes = plt.subplots(3, 8, figsize=(9, 3.5), layout="constrained")
for line, half, guesses, true in zip(axes, halves, draws.swapaxes(0, 1), clean[[155, 256, 405]], strict=True):
    for ax, picture in zip(line, (half, *guesses, true), strict=True):
        ax.imshow(picture, cmap=masked, vmin=0, vmax=1)
        ax.set(xticks=[], yticks=[])
axes[0, 0].set_title("observed", fontsize=9)
axes[0, 3].set_title("six draws", fontsize=9)
axes[0, 7].set_title("the digit", fontsize=9)
plt.show()
