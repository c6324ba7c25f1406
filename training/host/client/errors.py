"""Errors of the action host. Each carries the sentence for the operator."""


class HostError(RuntimeError):
    """Base of the others."""


class ModeUnavailable(HostError):
    """The mode asked for cannot be given here."""


class HostLost(HostError):
    """The host cannot be kept alive."""


class NotAdmitted(HostError):
    """Something was loaded that this host never admitted."""
