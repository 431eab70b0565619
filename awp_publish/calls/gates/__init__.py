"""The gates through which a call goes, a file each."""
