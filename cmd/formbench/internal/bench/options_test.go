package bench

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestPlaces makes sure that results, which are shown to others, do not name the places
// on this machine where a run kept things.
func TestPlaces(t *testing.T) {
	t.Parallel()
	o, err := ParseOptions([]string{"-dir", "place", "-json", "place", "-chart", "place", "-render", "place", "-cpuprofile", "place"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{o.Dir, o.JSONFile, o.Charts, o.Render, o.Profiles} {
		if got != "place" {
			t.Fatalf("got %+v", o)
		}
	}
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "place") || !strings.Contains(string(text), `"scaleSmall":10000`) {
		t.Errorf("got %s", text)
	}
}
