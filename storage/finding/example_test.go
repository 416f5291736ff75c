package finding_test

import (
	"fmt"

	"github.com/formsvc/toolkit/storage/finding"
)

func Example() {
	list := []finding.Finding{
		finding.Good("schema", "all %d migrations are applied", 3),
		finding.Bad("synchronous", "set synchronous to FULL", "synchronous is %s: a power cut loses answers", "NORMAL"),
	}
	for _, f := range list {
		if f.Level == finding.Problem {
			fmt.Printf("%s: %s: %s\n", f.Check, f.Detail, f.Advice)
		}
	}
	// Output: synchronous: synchronous is NORMAL: a power cut loses answers: set synchronous to FULL
}
