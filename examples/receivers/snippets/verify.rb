require "openssl"

# Tells whether body, the raw bytes of a request, was signed with one of the
# secrets. signature is the value of the header x-service-signature. The raw bytes
# are request.raw_post in Rails, request.body.read in Sinatra.
def verify(secrets, signature, body)
  raise ArgumentError, "no secret" if secrets.empty? || secrets.any? { |secret| secret.to_s.empty? }

  secrets.any? do |secret|
    OpenSSL.secure_compare(OpenSSL::HMAC.hexdigest("SHA256", secret, body), signature.to_s)
  end
end
