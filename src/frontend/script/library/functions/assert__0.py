





def _assert__0(condition: bool, message: str):
    assert condition, message
