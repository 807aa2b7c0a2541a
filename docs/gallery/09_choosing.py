"""
How many components, which ranks
================================

Let samples decide that the fit has not seen. ``select`` walks from one number of components to the next
instead of fitting each from the start, and from one rank to the next by adding the direction that is missed
most.
"""

# %%
# 450 of the digits of 8×8 pixels that come with scikit-learn.
import matmix
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

X = load_digits().images[::4]

# %%
# First the ranks, with one component. The path adds a row or a column loading at a time; every candidate is
# judged by digits that were held out.
ranks = matmix.select(X, 1, rank="auto", estimator=matmix.Mixture(random_state=0))
print(ranks.advice_)

# %%
# Then the number of components, with cores of those sides.
best = ranks.best_params_["rank"]
counts = matmix.select(X, range(1, 13), rank=best, estimator=matmix.Mixture(random_state=0))
print(counts.advice_)

# %%
# On the left, what each rank is worth. Row loadings are all wanted, of the columns some are not: those at the
# left and right hardly ever hold ink. On the right, the likelihood of the digits a model was fitted to rises
# and rises; that of the others has its best where components begin to learn single digits. Of the models that
# are not worse than the best by more than a standard error, the simplest is chosen.
fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
table = ranks.cv_results_
rows, columns = np.array(table["rank"]).T
left.scatter(columns, rows, c=table["held_out"], s=300, cmap="viridis")
for row, column, value in zip(rows, columns, table["held_out"], strict=True):
    left.annotate(
        f"{value:.0f}", (column, row), ha="center", va="center", fontsize=7, color="white" if value < -150 else "black"
    )
left.scatter(best[1], best[0], s=460, facecolors="none", edgecolors="#d1603d", linewidths=2)
left.set(xlabel="rank of the columns", ylabel="rank of the rows", xlim=(1.5, 8.6), ylim=(1.5, 8.6), aspect="equal")
left.set_title(f"held-out log-likelihood; chosen: {best[0]}×{best[1]}", fontsize=10)
order = np.argsort(counts.cv_results_["n_components"])
k, own, held, spread = (
    np.array(counts.cv_results_[name])[order]
    for name in ("n_components", "log_likelihood", "held_out", "standard_error")
)
chosen = counts.best_params_["n_components"]
right.plot(k[1:], own[1:], "s--", color="#9aa5b1", markersize=4, label="fitted to them")
right.errorbar(k[1:], held[1:], spread[1:], color="#3b6fb6", marker="o", markersize=4, label="held out")
right.axvline(chosen, color="#d1603d", linewidth=1)
right.set(xlabel="components", ylabel="mean log-likelihood", xticks=k[1:])
right.set_title(f"from two components on (one: {held[0]:.0f}); chosen: {chosen}", fontsize=10)
right.legend(frameon=False)
plt.show()
