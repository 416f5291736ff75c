package formsvc

import "time"

// What the tests outside the package need of its inside.
var (
	EncodeID     = encodeID
	MemberOrder  = memberOrder
	NewReference = newReference
	ValidEmail   = validEmail
	SimpleEmail  = simpleEmail
)

// Retries is how often a new response is decided at most.
const Retries = retries

// CachedModules is how many modules a remembered campaign has at most.
const CachedModules = modulesRemembered

// NewIDGenerator returns the default of [Options.NewID].
func NewIDGenerator() func(time.Time) ID { return new(idGenerator).next }

// CheckValue returns the code of what the module has against the value, or "".
func CheckValue(m *Module, value string) string {
	code, _ := m.checkValue(value)
	return code
}
