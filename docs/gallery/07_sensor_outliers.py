"""
Outliers in a grid of sensors
=============================

Sensors in a grid report one picture after the other, and now and then something is wrong: a sensor is stuck,
a cable is interchanged, a row drifts. None of these values is unusual by itself; what is wrong is that it
does not fit the others.
"""

# %%
# A field of 20×30 soil sensors, an hour apart: the day's warmth, clouds that pass, a slope that faces south,
# and noise. In 20 of 800 pictures something is wrong, and nobody says in which.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

rng = np.random.default_rng(0)
north, east = np.mgrid[0:1:20j, 0:1:30j]
hours = np.arange(800)
warmth = 4 * np.sin(2 * np.pi * (hours / 24 - 0.3)) + gaussian_filter(rng.normal(size=800), 30) * 12
X = 14 + warmth[:, None, None] * (0.7 + 0.6 * (1 - north)) + 2 * np.sin(3 * east)
clouds = gaussian_filter(rng.normal(size=(800, 20, 30)), (2, 5, 7)) * 30
X += clouds * (1 + np.sin(2 * np.pi * (hours / 24 - 0.3)))[:, None, None] + 0.25 * rng.normal(size=X.shape)

wrong = np.sort(rng.choice(800, 20, replace=False))
for number, at in enumerate(wrong):
    i, j = rng.integers(2, 14), rng.integers(3, 22)
    if number % 4 == 0:
        X[at, i : i + 4, j : j + 4] = X[at, i : i + 4, j : j + 4].mean() + rng.normal(
            scale=1.6, size=(4, 4)
        )  # a loose plug
    elif number % 4 == 1:
        X[at, i] = X[at, i, ::-1] + 1.2  # a row that is wired the wrong way round
    elif number % 4 == 2:
        X[at, :, j] += np.linspace(-2.5, 2.5, 20)  # a column that drifts
    else:
        X[at] += 2.2 * np.exp(-((north - i / 20) ** 2 + (east - j / 30) ** 2) / 0.004)  # something warm is buried here

# %%
# Student-t noise keeps the faults among the samples from deciding the fit. ``contamination`` is the share
# that is called an outlier.
detector = matmix.OutlierDetector(matmix.Mixture(2, rank=(5, 6), noise="t", random_state=0), contamination=0.025).fit(X)
scores = detector.score_samples(X)
truth = np.isin(hours, wrong)
forest = IsolationForest(random_state=0).fit(X.reshape(800, -1))
called = detector.predict(X) < 0
print(f"found: {np.sum(truth & called)} of 20, false alarms: {np.sum(~truth & called)}")
print(f"area under the ROC curve: {roc_auc_score(truth, -scores):.3f}")
by_forest = roc_auc_score(truth, -forest.score_samples(X.reshape(800, -1)))
print(f"isolation forest on the flattened pictures: {by_forest:.3f}")

# %%
# Above: the log-likelihood of every hour. Below: the eight least likely pictures, and what in them is left
# unexplained.
worst = np.argsort(scores)[:8]
rest = X - detector.estimator_.reconstruct(X)
fig = plt.figure(figsize=(11, 4.6), layout="constrained")
top, bottom = fig.subfigures(2, 1, height_ratios=(1, 1.1))
ax = top.subplots()
ax.plot(hours[~truth], scores[~truth], ".", color="#9aa5b1", markersize=3, label="right")
ax.plot(wrong, scores[wrong], "o", color="#d1603d", markersize=4, label="wrong")
ax.axhline(detector.offset_, color="#5b5b5b", linewidth=0.8, linestyle="--", label="threshold")
ax.set(xlabel="hour", ylabel="log-likelihood", xlim=(0, 800))
ax.legend(frameon=False, ncols=3, loc="lower right")
for pair, at in zip(bottom.subplots(2, 8).T, worst, strict=True):
    pair[0].imshow(X[at], cmap="inferno")
    pair[1].imshow(rest[at], cmap="RdBu_r", vmin=-3, vmax=3)
    pair[0].set_title(f"hour {at}", fontsize=9, color="#d1603d" if truth[at] else "black")
    for ax in pair:
        ax.set(xticks=[], yticks=[])
plt.show()
