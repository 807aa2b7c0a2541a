"""What it means that two models are the same."""


def assert_same_parameters(a, b):
    """Every parameter of both mixtures or low-rank models has the same bits."""
    names = ("weights_", "means_", "noise_variances_") if hasattr(a, "weights_") else ("mean_",)
    for name in names:
        assert getattr(a, name).tobytes() == getattr(b, name).tobytes(), name
    for one, other in zip(a.loadings_, b.loadings_, strict=True):
        assert one.tobytes() == other.tobytes()


def assert_same_bits(a, b):
    """The same parameters, found on the same way."""
    assert_same_parameters(a, b)
    assert a.history_.log_likelihood == b.history_.log_likelihood
    assert a.history_.reconstruction_error == b.history_.reconstruction_error
