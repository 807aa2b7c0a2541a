"""
xarray and Dask
===============

A labelled array in chunks goes into ``fit`` as it is. Every pass runs chunk by chunk, on the threads of this
process or on the workers of a cluster, with the same bits; nothing is gathered, and answers about a Dask
array are Dask arrays.
"""

# %%
# Six years of daily pressure maps over an ocean, made here: three regimes that last for a week or so (a high
# in the west, a low in the north, waves that pass), and weather around them. Such arrays usually come from
# ``xarray.open_zarr``.
import dask.array as da
import matmix
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from scipy.ndimage import gaussian_filter

rng = np.random.default_rng(0)
latitude, longitude = np.linspace(65, 30, 28), np.linspace(-70, 0, 44)
north, east = np.meshgrid((latitude - 30) / 35, (longitude + 70) / 70, indexing="ij")
days = 2192
regime = np.repeat(rng.integers(0, 3, size=days), rng.geometric(1 / 7, size=days))[:days]
high = 14 * np.exp(-((east - 0.35) ** 2 + (north - 0.35) ** 2) / 0.06) - 5 * np.exp(-((north - 0.95) ** 2) / 0.05)
low = -16 * np.exp(-((east - 0.6) ** 2 + (north - 0.8) ** 2) / 0.08)
phase = rng.uniform(0, 2 * np.pi, size=days)[:, None, None]
wave = 9 * np.sin(2 * np.pi * 1.7 * east + phase) * np.exp(-((north - 0.6) ** 2) / 0.08)
strength = rng.gamma(16, 1 / 16, size=days)[:, None, None]
maps = strength * np.where((regime == 2)[:, None, None], wave, np.array([high, low, 0 * low])[regime])
maps += 40 * gaussian_filter(rng.normal(size=maps.shape), (1, 4, 5)) + rng.normal(scale=0.5, size=maps.shape)

pressure = xr.DataArray(
    da.from_array(1013 + maps, chunks=(500, -1, -1)),
    dims=("time", "latitude", "longitude"),
    coords={"time": np.datetime64("2015-01-01") + np.arange(days), "latitude": latitude, "longitude": longitude},
)
print(dict(pressure.sizes), "in", pressure.data.numblocks[0], "chunks")

# %%
# A fit reads each chunk once per pass. ``predict`` of a Dask array computes nothing until it is asked to.
model = matmix.Mixture(3, rank=(3, 4), tol=1e-4, random_state=0).fit(pressure)
found = model.predict(pressure)
print(type(found).__module__, found.shape)
found = xr.DataArray(found.compute(), dims="time", coords={"time": pressure.time}, name="regime")
best = np.array([np.bincount(regime[found == k], minlength=3).argmax() for k in range(3)])
print(f"days given to the regime they were made from: {np.mean(best[found.values] == regime):.0%}")

# %%
# The means of the regimes as maps (waves of any phase have none: what makes them a regime is their loadings),
# and half a year of days.
fig = plt.figure(figsize=(11, 5.2), layout="constrained")
top, bottom = fig.subfigures(2, 1, height_ratios=(1.35, 1))
for ax, k in zip(top.subplots(1, 3), np.argsort(best), strict=True):
    lines = ax.contourf(
        longitude, latitude, model.means_[k] - 1013, levels=np.arange(-14, 15, 2), cmap="RdBu_r", extend="both"
    )
    ax.contour(longitude, latitude, model.means_[k] - 1013, levels=np.arange(-14, 15, 2), colors="k", linewidths=0.3)
    ax.set(title=f"regime {best[k] + 1}: {100 * model.weights_[k]:.0f} % of the days", xlabel="°E", ylabel="°N")
top.colorbar(lines, ax=top.axes, label="hPa from the mean", shrink=0.9)
ax = bottom.subplots()
year = found.sel(time=slice("2017-01-01", "2017-06-30"))
ax.step(year.time, best[year.values] + 1, where="mid", color="#3b6fb6", linewidth=1.4, label="found")
ax.plot(
    year.time,
    regime[found.get_index("time").get_indexer(year.time)] + 1.12,
    ".",
    color="#d1603d",
    markersize=3,
    label="made from",
)
ax.set(
    yticks=[1, 2, 3],
    ylabel="regime",
    ylim=(0.7, 3.7),
    title="half a year",
    xlim=(year.time[0].values, year.time[-1].values),
)
ax.legend(frameon=False, ncols=2, loc="upper right")
plt.show()
