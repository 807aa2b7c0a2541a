"""matmix and its peers on the same data, threads and precision, in one run: `make bench`."""
