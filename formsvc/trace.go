package formsvc

import (
	"context"
	"regexp"
	"strings"
)

// traceParentForm is version 00 of https://www.w3.org/TR/trace-context/#traceparent-header.
var traceParentForm = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)

// traceParent returns [Event.TraceParent] for events that are raised in ctx.
func (c *core) traceParent(ctx context.Context) string {
	if c.TraceParent == nil {
		return ""
	}
	parent := c.TraceParent(ctx)
	if !traceParentForm.MatchString(parent) || strings.HasPrefix(parent, "00-"+strings.Repeat("0", 32)) ||
		strings.Contains(parent, "-"+strings.Repeat("0", 16)+"-") {
		return ""
	}
	return parent
}
