"""
EEG windows: where, and when
============================

A window of EEG is a matrix, channels × time. A bilateral model has loadings for both: maps over the scalp and
courses in time, and the core says how strongly which map follows which course. Flattened, the same window
would have one pattern of 32 × 128 numbers for each of them.
"""

# %%
# Made for the purpose, but with the parts that real recordings have: 32 electrodes, 1.28 s at 100 Hz,
# coloured noise that neighbours share, and three kinds of windows: rest with an alpha rhythm of any phase at
# the back of the head, a response that comes about 350 ms after a stimulus, and blinks, which only the
# electrodes above the eyes see.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

rng = np.random.default_rng(0)
turn = np.pi * (1 + 5**0.5) * np.arange(32)
electrodes = np.sqrt((np.arange(32) + 0.5) / 32)[:, None] * np.c_[np.cos(turn), np.sin(turn)]
electrodes = electrodes[np.argsort(-electrodes[:, 1])]  # from the forehead to the back
seconds = np.arange(128) / 100


def at(x, y, width):
    """A source under (x, y): what of it each electrode sees."""
    return np.exp(-(((electrodes - (x, y)) ** 2).sum(1)) / (2 * width**2))


def window(kind):
    """One window of a kind, in microvolts: 32 × 128."""
    mixing = np.exp(-((electrodes[:, None] - electrodes) ** 2).sum(2) / 0.18)
    spectrum = rng.normal(size=(32, 65, 2)) @ [1, 1j] / np.sqrt(1 + np.arange(65))
    noise = 7 * mixing @ np.fft.irfft(spectrum, 128, axis=1)
    if kind == 0:
        phase, rate = rng.uniform(0, 2 * np.pi), rng.normal(10, 0.3)
        signal = rng.gamma(8, 1.6) * np.outer(at(0, -0.75, 0.4), np.sin(2 * np.pi * rate * seconds + phase))
    elif kind == 1:
        delay = rng.normal(0.35, 0.03)
        early, late = np.exp(-(((seconds - 0.12) / 0.03) ** 2)), np.exp(-(((seconds - delay) / 0.09) ** 2))
        signal = rng.gamma(9, 1.4) * (np.outer(at(0, -0.3, 0.45), late) - 0.6 * np.outer(at(0, 0.35, 0.3), early))
    else:
        signal = rng.gamma(9, 5) * np.outer(at(0, 1.0, 0.3), np.exp(-(((seconds - rng.uniform(0.5, 0.8)) / 0.09) ** 2)))
    return signal + noise


kinds = rng.choice(3, size=600, p=[0.5, 0.35, 0.15])
X = np.array([window(kind) for kind in kinds])

# %%
# Three components with four maps and six courses each.
model = matmix.Mixture(3, rank=(4, 6), random_state=0).fit(X)
found = model.predict(X)
print(f"agreement with the kinds (adjusted Rand index): {adjusted_rand_score(kinds, found):.2f}")
print(f"{model.n_parameters_} parameters; a Gaussian mixture with full covariances would have {3 * 4096 * 4099 // 2:,}")


# %%
# Each component: its two longest channel loadings as maps of the scalp (nose up), its two longest time
# loadings, and its mean. A rhythm of any phase has no mean at all; it takes two courses a quarter of a period
# apart. The response is early at the front and late at the back. Blinks that come earlier or later want a
# second course that looks like the slope of the first.
def scalp(ax, values):
    most = np.abs(values).max()
    ax.tricontourf(*electrodes.T, values, levels=np.linspace(-most, most, 21), cmap="RdBu_r")
    ax.plot(*electrodes.T, "k.", markersize=1.5)
    ax.plot([-0.1, 0, 0.1], [1.0, 1.13, 1.0], "k", linewidth=1)
    ax.add_patch(plt.Circle((0, 0), 1.02, fill=False))
    ax.set(aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.2))
    ax.axis("off")


names = ["rest with alpha", "response", "blinks"]
fig, axes = plt.subplots(3, 4, figsize=(10, 6.6), layout="constrained", width_ratios=(1, 1, 1.7, 1.7))
for line, k in zip(axes, np.argsort([np.median(kinds[found == k]) for k in range(3)]), strict=True):
    name = names[int(np.median(kinds[found == k]))]
    for i in range(2):
        scalp(line[i], model.loadings_[0][k, :, i])
    line[0].set_title(f"{name}\n{100 * model.weights_[k]:.0f} % of the windows", fontsize=10, loc="left")
    line[2].plot(seconds, model.loadings_[1][k, :, :2], linewidth=1.4)
    line[2].set(yticks=[])
    image = line[3].imshow(model.means_[k], aspect="auto", cmap="RdBu_r", vmin=-25, vmax=25, extent=(0, 1.28, 32, 1))
    line[3].set_yticks([1, 32], ["front", "back"])
axes[0, 1].set_title("channel loadings", fontsize=10)
axes[0, 2].set_title("time loadings", fontsize=10)
axes[0, 3].set_title("mean, µV", fontsize=10)
for ax in axes[2, 2:]:
    ax.set_xlabel("seconds")
fig.colorbar(image, ax=axes[:, 3], shrink=0.5)
plt.show()
