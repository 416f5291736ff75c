package httpx

import (
	"errors"
	"net/http"
)

// getHealth answers as long as the process does.
func (h *Handler) getHealth(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	c.out = append(c.out, `{"status":"ok"}`...)
	return c.send(http.StatusOK, noStore)
}

// getReadiness answers 503 while requests would fail.
func (h *Handler) getReadiness(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	if err := h.ready(c.r.Context()); err != nil {
		return &problem{
			status: http.StatusServiceUnavailable, code: "not_ready", cause: err,
			told:   errors.Is(err, http.ErrServerClosed), // no failure, and asked for every second
			detail: "The service can't take requests now.",
		}
	}
	c.out = append(c.out, `{"status":"ready"}`...)
	return c.send(http.StatusOK, noStore)
}
