package formsvc

// A Change is what commits together with a record. Nothing else makes events, and
// what is written beside records is written by it.
type Change struct {
	Events []Event
	// Audit says who did it. Nil for what is not audited.
	Audit *AuditEntry
	// Idempotency keeps the answer to the call for when it is repeated. Nil unless
	// the caller asked for it ([Service.Once]).
	Idempotency *IdempotencyRecord
}

func (c *Change) add(e Event) { c.Events = append(c.Events, e) }
