package webhook

import (
	"net/http"
	"strings"
)

// IsReservedHeader reports whether a webhook can't have a header of that name of its own,
// in any spelling: it is the service's, says how the message is framed or coded, belongs to
// the connection (RFC 9110, section 7.6.1), or is set by proxies and tracers.
func IsReservedHeader(name string) bool {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Forwarded",
		"Host", "Idempotency-Key", "Keep-Alive", "Te", "Traceparent", "Tracestate", "Trailer", "Transfer-Encoding", "Upgrade",
		"User-Agent", "Via", "Webhook-Id", "Webhook-Signature", "Webhook-Timestamp":
		return true
	}
	return strings.HasPrefix(name, "Proxy-") || strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Service-")
}
