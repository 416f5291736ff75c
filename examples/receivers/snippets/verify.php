<?php

// Tells whether $body, the raw bytes of a request, was signed with one of the
// secrets. $signature is the value of the header x-service-signature,
// $_SERVER['HTTP_X_SERVICE_SIGNATURE'] ?? null; the raw bytes are
// file_get_contents('php://input').
function verify(array $secrets, ?string $signature, string $body): bool
{
    if ($secrets === [] || in_array('', $secrets)) {
        throw new InvalidArgumentException('no secret');
    }
    foreach ($secrets as $secret) {
        if (hash_equals(hash_hmac('sha256', $body, $secret), $signature ?? '')) {
            return true;
        }
    }
    return false;
}
