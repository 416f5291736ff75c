package intake

import (
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
)

// fieldName returns the name of the module that a field belongs to: browsers send line breaks as CR LF, and escape them and quotes
// in multipart forms (WHATWG HTML §4.10.22.8). Other names are returned unchanged.
func (v *visit) fieldName(sent string) string {
	if !strings.ContainsAny(sent, "%\r") {
		return sent
	}
	name := strings.NewReplacer("%22", `"`, "%0D%0A", "\n", "\r\n", "\n").Replace(sent)
	has := func(name string) bool {
		return slices.ContainsFunc(v.campaign.Modules, func(m formsvc.Module) bool { return m.Name == name })
	}
	if has(name) && !has(sent) {
		return name
	}
	return sent
}
