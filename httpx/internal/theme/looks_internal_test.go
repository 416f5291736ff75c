package theme

import (
	"os"
	"regexp"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// Every colour is legible: that of the button's text, and that of links on light and dark pages, which stays the owner's where it can.
func TestContrast(t *testing.T) {
	t.Parallel()
	ours, err := os.ReadFile("../../intake/assets/form.css")
	if err != nil {
		t.Fatal(err)
	}
	for accent, want := range map[string][3]string{ // of texts on the button, links on light pages, on dark ones
		"#ffff00": {"#000000", "", "#ffff00"}, "#ffffff": {"#000000", "", "#ffffff"}, "#000000": {"#ffffff", "#000000", ""},
		"#808080": {"#000000", "", "#808080"}, "#0000ff": {"#ffffff", "#0000ff", ""}, "#1557a8": {"#ffffff", "#1557a8", ""}, "#757575": {"#ffffff", "#757575", ""},
	} {
		found := map[string]string{}
		for scheme, background := range map[string]color{"light": {255, 255, 255}, "dark": {0x12, 0x16, 0x1c}} {
			css := stylesheet(string(ours), &formsvc.FormTheme{Accent: accent, Scheme: scheme})
			for _, m := range regexp.MustCompile(`:root:root\{--accent:(#\w{6});--on-accent:(#\w{6})\}\n(?:@media screen\{)?:root:root\{--link:(#\w{6})\}`).FindAllStringSubmatch(css, -1) {
				button, _ := parseColor(m[1])
				on, _ := parseColor(m[2])
				link, _ := parseColor(m[3])
				if m[1] != accent || contrast(button, on) < legible || contrast(link, background) < legible {
					t.Errorf("%s, %s: %v has contrasts %.2f and %.2f", accent, scheme, m[1:], contrast(button, on), contrast(link, background))
				}
				found["on"], found[scheme] = m[2], m[3]
			}
		}
		for i, name := range []string{"on", "light", "dark"} {
			if got := found[name]; got == "" || want[i] != "" && got != want[i] || want[i] == "" && got == accent {
				t.Errorf("%s: %s is %q, want %q", accent, name, got, want[i])
			}
		}
	}
}
