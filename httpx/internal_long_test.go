//go:build long

package httpx

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// V2: small elements must not take much memory. The limit is that of encoding/json into any, on which the reliability
// goals are based.
func TestMemoryOfHostileBodies(t *testing.T) {
	var headers strings.Builder
	for i := range 1 << 20 / 8 {
		fmt.Fprintf(&headers, `"%x":"",`, i)
	}
	for name, body := range map[string]string{
		"modules":  `{"title":"x","modules":[` + strings.Repeat("{},", 1<<20/3),
		"options":  `{"title":"x","modules":[{"options":[` + strings.Repeat(`"",`, 1<<20/3),
		"metadata": `{"title":"x","metadata":{` + strings.Repeat(`"":"",`, 1<<20/6),
		"unknown":  `{"x":[` + strings.Repeat("{},", 1<<20/3),
		"arrays":   `{"x":[` + strings.Repeat("[],", 1<<20/3),
		"faults":   `{"title":"x","modules":[{"options":[` + strings.Repeat("1,", 1<<20/2),
		"one key":  `{"` + strings.Repeat("k", 1<<20) + `":1}`,
		"one text": `{"title":"` + strings.Repeat("x", 1<<20) + `"}`,
		"events":   `{"events":[` + strings.Repeat(`"",`, 1<<20/3),
		"numbers":  `{"events":[` + strings.Repeat("1,", 1<<20/2),
		"headers":  `{"headers":{` + headers.String(),
	} {
		var d decoder
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if err := d.read(strings.NewReader(body), 2<<20); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(body, `{"events"`) || strings.HasPrefix(body, `{"headers"`) {
			_, _ = d.webhookInput(false)
		} else {
			_, _ = d.campaignInput(false)
		}
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 43<<20 {
			t.Errorf("%s: 1 MiB allocates %d KiB", name, grown>>10)
		} else {
			t.Logf("%s: %d KiB", name, grown>>10)
		}
	}
}
