//go:build failpoints && long

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// A process dies before or after one of its first commits. Repeats of the calls on the next process, with the same
// Idempotency-Keys, create each response exactly once.
func TestFailpoint(t *testing.T) {
	t.Parallel()
	for name, sh := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		first := sh.serve(t)
		campaign := first.campaign(t)
		first.stop()
		stored := 0
		for _, moment := range []string{"before", "after"} {
			for n := 1; n <= 4; n++ { // others commit, too: the start, the use of a key
				call := func(s *service, i int) (answer, error) {
					return s.ask(t.Context(), http.MethodPost, responses(campaign), submission("ada@example.com", "yes"), fmt.Sprintf("Idempotency-Key: %s-%d-%d", moment, n, i))
				}
				sh.env = environment{fmt.Sprintf("FORMSVC_FAILPOINT=%s:%d", moment, n)}
				p := sh.execute(t, "failpoints", serveLine(nil)...)
				if match := p.log.wait(p.ctx, servingPattern); match != nil {
					mortal := &service{url: "http://" + match[1], key: first.key}
					dead := false
					for i := 0; !dead && i < n; i++ {
						_, err := call(mortal, i)
						dead = err != nil
					}
					if !dead {
						t.Fatalf("%s, %s %d: the process didn't die", name, moment, n)
					}
				}
				<-p.ctx.Done()
				sh.env = nil
				next := sh.serve(t)
				next.key = first.key
				for i := range n {
					if a, err := call(next, i); err != nil || a.status != http.StatusCreated {
						t.Fatalf("%s, %s %d: repeated: %v, %v", name, moment, n, a, err)
					}
				}
				next.stop()
				if stored += n; strings.Count(sh.do(t, "export", "--campaign", campaign, "--format", "ndjson"), "\n") != stored {
					t.Fatalf("%s, %s %d: want %d responses", name, moment, n, stored)
				}
			}
		}
	}
}

// The normal build contains no failpoints.
func TestFailpointsAreNotInTheNormalBuild(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(program(t, ""))
	if err != nil || bytes.Contains(content, []byte("FORMSVC_FAILPOINT")) {
		t.Errorf("FORMSVC_FAILPOINT is in the program (%v)", err)
	}
}
