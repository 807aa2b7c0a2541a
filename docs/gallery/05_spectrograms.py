"""
Spectrograms: kinds of calls
============================

Sounds become matrices, frequency × time, and calls of one kind differ by how long, how high and how loud they
are. A mixture sorts them without being told what there is, and keeps 36 numbers of the 1,968 of each.
"""

# %%
# Four kinds of calls, one second each at 8 kHz: a rising whistle, a falling one, a trill, and a hum with
# harmonics, in a noisy forest. Each differs in pitch, length, loudness and start.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import lfilter, spectrogram
from sklearn.metrics import adjusted_rand_score

rng = np.random.default_rng(1)
RATE = 8000
time = np.arange(RATE) / RATE


def call(kind):
    start, length, pitch = rng.uniform(0.15, 0.3), rng.uniform(0.4, 0.55), rng.normal(1, 0.015 if kind == 3 else 0.05)
    s = (time - start) / length
    loud = np.where((s > 0) & (s < 1), np.sin(np.pi * np.clip(s, 0, 1)) ** 0.5, 0) * rng.gamma(20, 0.05)
    course = np.clip(s, 0, 1)
    hertz = {
        0: 900 + 1700 * course,
        1: 2900 - 1300 * course**0.6,
        2: 2000 + 500 * np.sin(2 * np.pi * 6 * s),
        3: 420 + 0 * s,
    }
    tone = 2 * np.pi * np.cumsum(pitch * hertz[kind]) / RATE
    harmonics = range(1, 7) if kind == 3 else range(1, 2)
    return loud * sum(np.sin(h * tone) / h for h in harmonics)


def picture(sound):
    """Decibels, frequency × time, low frequencies first."""
    sound = sound + 0.03 * lfilter([1], [1, -0.7], rng.normal(size=RATE)) * rng.gamma(30, 1 / 30)
    _, _, power = spectrogram(sound, RATE, nperseg=256, noverlap=64)
    return 10 * np.log10(power[2:98:2] + power[3:98:2] + 1e-9)


kinds = rng.integers(0, 4, size=500)
X = np.array([picture(call(kind)) for kind in kinds])
print("samples of", X.shape[1:], "numbers: frequency × time")

# %%
# Four components; the rank is that of a matrix with a few bands and a few moments.
model = matmix.Mixture(4, rank=(6, 6), random_state=0).fit(X)
found = model.predict(X)
print(f"agreement with the kinds (adjusted Rand index): {adjusted_rand_score(kinds, found):.2f}")
rest = model.squared_errors(X).sum() / ((X - X.mean(axis=0)) ** 2).sum()
print(f"{rest:.0%} of the variance is left out, the noise of the forest among it")

# %%
# One call of each component, the same rebuilt from its core, and the mean of the component.
fig, axes = plt.subplots(3, 4, figsize=(10, 6), layout="constrained", sharex=True, sharey=True)
shades = {"aspect": "auto", "origin": "lower", "cmap": "magma", "extent": (0, 1, 62, 3062), "vmin": -75, "vmax": -30}
names = ["rising whistle", "falling whistle", "trill", "hum"]
for column, k in zip(axes.T, range(4), strict=True):
    one = np.flatnonzero(found == k)[0]
    for ax, shown in zip(column, (X[one], model.reconstruct(X[one : one + 1])[0], model.means_[k]), strict=True):
        ax.imshow(shown, **shades)
    column[0].set_title(f"{names[np.bincount(kinds[found == k]).argmax()]}: {np.sum(found == k)} calls", fontsize=10)
for ax, name in zip(axes[:, 0], ("a call", "rebuilt", "mean of the component"), strict=True):
    ax.set_ylabel(f"{name}\nHz")
for ax in axes[2]:
    ax.set_xlabel("seconds")
plt.show()
