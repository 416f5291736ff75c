package delivery

// NewTransport makes the transport of an engine with these options.
var NewTransport = newTransport
