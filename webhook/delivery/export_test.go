package delivery

// NewTransport returns the transport of an engine with these options.
var NewTransport = newTransport
