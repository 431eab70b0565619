"""Where sign-in is, below the root of our endpoints."""


class SignInPaths:
    """The paths of sign-in below the root of our endpoints."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.authorize = f"{root}/sign-in/authorize"
        self.consent = f"{root}/sign-in/consent"
        self.token = f"{root}/sign-in/token"
        self.register = f"{root}/sign-in/register"
        self.revoke = f"{root}/sign-in/revoke"
        self.connections = f"{root}/connections"
        self.person = f"{root}/sign-in/person"
