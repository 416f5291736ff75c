package bench

import (
	"flag"
	"fmt"
)

// scaleOptions are the flags of the scale part.
type scaleOptions struct {
	ScalePostgres int  `json:"scalePostgres"`
	ScaleSQLite   int  `json:"scaleSqlite"`
	ScaleSmall    int  `json:"scaleSmall"`
	ScaleDue      int  `json:"scaleDue"`
	ScaleKeep     bool `json:"-"`
}

func (o *scaleOptions) flags(fs *flag.FlagSet) {
	fs.IntVar(&o.ScalePostgres, "scale-postgres", 10_000_000, "responses in the large installation of the scale part on Postgres")
	fs.IntVar(&o.ScaleSQLite, "scale-sqlite", 2_000_000, "the same on SQLite")
	fs.IntVar(&o.ScaleSmall, "scale-small", 10_000, "responses in the small one")
	fs.IntVar(&o.ScaleDue, "scale-due", 1_000_000, "deliveries that are due in the large one, if it has as many responses")
	fs.BoolVar(&o.ScaleKeep, "scale-keep", false, "keep the large installations, and use those that were kept")
}

// LeastScale is enough for the deliveries that are claimed in a round.
const LeastScale = 5_000

func (o *scaleOptions) check() error {
	if o.ScaleSmall < LeastScale || o.ScaleDue < LeastScale || o.ScalePostgres <= o.ScaleSmall || o.ScaleSQLite <= o.ScaleSmall {
		return fmt.Errorf("-scale-small and -scale-due must be at least %d, -scale-postgres and -scale-sqlite more than -scale-small", LeastScale)
	}
	return nil
}
