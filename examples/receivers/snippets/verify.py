import hmac


def verify(secrets, signature, body):
    """Tells whether body, the raw bytes of a request, was signed with one of the
    secrets. signature is the value of the header x-service-signature. The raw bytes
    are request.get_data() in Flask, request.body in Django."""
    if not secrets or not all(secrets):
        raise ValueError("no secret")
    got = (signature or "").encode()
    return any(
        hmac.compare_digest(hmac.digest(secret.encode(), body, "sha256").hex().encode(), got)
        for secret in secrets
    )
