package webhook

// EventTypes returns every event type there is, in the order of the service's
// documentation.
func EventTypes() []EventType {
	return []EventType{
		ResponseCreated, ResponseUpdated, ResponseStatusChanged, ResponseCompleted, SignatureCompleted, FileUploaded,
	}
}
