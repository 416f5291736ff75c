package webhook

import (
	"net/http"
	"strings"
)

// IsReservedHeader reports whether a webhook can't have a custom header with that name, in any
// spelling. A name is reserved if the service, proxies or tracers set it, if it describes the
// message's framing or coding, or if it belongs to the connection (RFC 9110, section 7.6.1).
func IsReservedHeader(name string) bool {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Forwarded",
		"Host", "Idempotency-Key", "Keep-Alive", "Te", "Traceparent", "Tracestate", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent", "Via", "Webhook-Id", "Webhook-Signature", "Webhook-Timestamp":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Service-")
}
