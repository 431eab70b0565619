settings: dict[str, str] = {}
url = settings["URL"]
