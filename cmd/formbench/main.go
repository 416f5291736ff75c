// Command formbench measures what requests to the API, deliveries and files cost, beside what shows the limits, and beside
// PocketBase and River. It needs Linux.
//
//	make bench BENCHFLAGS="-only create -rounds 1"
//
// # What is measured
//
//   - create: POST of a response with five answers to a campaign with one webhook, so that each is a response, an event
//     and a delivery, durable. Nothing delivers. Every cell has a database of its own, which afterwards must hold exactly
//     what was acknowledged. "ceiling" is net/http and encoding/json and stores nothing, "each" is the API with one
//     transaction per request.
//   - read: GET of one response, and of the newest 20 with the total.
//   - checks: create without a quota, with one, and with one and an Idempotency-Key of its own for every request.
//   - overload: what is left of the goodput, which is responses made, when clients ask for more than the server can: with
//     connections that send their next request at once when one is refused, that wait for Retry-After, and with requests
//     that come at ten times the rate that 64 connections reach, whatever the answers, and are given up after a second
//     without a free connection. The capacity is bounded by one processor, which leaves the others to the clients, or by a
//     database that takes 2 ms for a response. "unbounded" works on all requests at once. On SQLite.
//
// Deliveries, beside a loop that signs and posts the same payload from memory (the reference), which is measured before
// and after every cell, and beside River, a job queue, on the same kind of database:
//
//   - steady: responses are accepted one by one while the same process delivers. The rate is the receiver's, from the
//     first arrival to the last; latencies are from commit to arrival.
//   - drain: 20,000 deliveries were queued before the process started; what is accepted is so without delivering.
//   - latency: 50 events a second.
//   - isolation: what healthy endpoints get beside one that hangs, and beside as many hostile ones, and among healthy
//     ones. The two take turns.
//   - backlog: what it takes to find and claim deliveries of nine endpoints, beside a million that are due for a tenth,
//     and without them.
//   - idle: a process that has nothing to do.
//
// The receiver is a process of its own that checks every signature: a wrong one fails the run. So does a delivery that the
// store does not call delivered afterwards, with an attempt that says so.
//
//   - files: uploads (raw and as a form) and downloads of 100 MB, one after the other over one connection, beside an SQLite
//     store. On a disk they are compared with "copy", a handler with io.Copy between the request and a file, which neither
//     hashes nor waits for the disk; "copy, hash, sync" does both. On S3 they are compared with "minio-go", where this
//     program speaks to the S3 server itself. That is versitygw, named by FORMSVC_TEST_VERSITYGW, on the same disk. And by
//     how much the memory of the API's server grows over what a file of 1 MB takes, for one file of 1 GiB up and down, and
//     for 50 uploads at once. Every acknowledged upload must have the hash of what was sent, and every download the length;
//     one of them is compared as a whole.
//
// PocketBase, a program of the module in the directory peers as River is, has the settings and collections that its own
// documentation leads to:
//
//   - peers-create: a response is one row there, which a power cut may take back (synchronous NORMAL), and which anyone may
//     make; then with a token; then with FULL; then with FULL as a batch of response, event and delivery, which is what the
//     API does for each. At last new responses come at half the rate that PocketBase can answer, whatever the answers, and
//     latencies count from when they were due.
//   - peers-read: GET of one of 200,000 responses, the newest 20 with the total, and the page half-way through them.
//     PocketBase sorts by @rowid, for which it has an index, and by the field created, for which it has none unless one
//     adds it.
//   - peers-files: one upload of 1 GiB.
//   - peers-start: from the start of the process to the first answer.
//   - peers-postgres: creates on Postgres beside "single", a handler that checks nothing and stores response, event and
//     delivery with one statement.
//   - scale, when it is named: the same requests, claims and outcomes on an installation of ten million responses (two million on SQLite),
//     with an event each and a million deliveries that are due, and on one of ten thousand, in turn. The product makes the
//     records; they are stored by COPY or large transactions and samples of them read back through the service before
//     anything is measured.
//
// # What comes out
//
// Tables of Markdown, with the median and the range of the rounds, ratios within rounds and goals. -out keeps every cell in
// the format of Go benchmarks as soon as it is measured, so that benchstat compares runs:
//
//	benchstat -col /system -row .name,/what,/conns run.txt
//	benchstat before.txt after.txt
//
// -chart draws an SVG for each table. -render makes tables, goals and charts of what -out wrote in earlier runs.
//
// # How
//
// Systems take turns within each round, and each cell starts a process of its own. The load of requests is a closed loop:
// every connection sends its next one when the last one is answered; in an open loop latencies begin when a request was
// due. Percentiles are exact, from all samples. The generator is this program's: vegeta takes four times the CPU time for
// a request, so that the same server reaches less than half of its rate on a machine that both share, and its latencies
// begin when a request is sent. CPU time per request says more than requests per second. It is the kernel's, in steps of
// 10 ms: cells much shorter than a second make it coarse. The machine's is sampled and that of processes is not, so that
// of everything else, their difference, can be a little below zero. What the kernel writes to the disk in its own time
// counts as everything else.
//
// # Where things are
//
// Each part has a package below internal: requests, deliver, files, peers and scale. It has the order in which cells are
// measured, and notes each with its figures in bench, which has the flags and the names of things, too. Packages result
// and goals make of them what is shown. The packages worker and pocketbase are what this program and that of the module
// peers agree on.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// After the first signal the next one ends the program at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are where the program reads and writes: results go to out, progress
// to err.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run returns the exit status: 0, 1 when a measurement failed, 2 when the flags
// were not understood.
func run(ctx context.Context, args []string, std streams) int {
	fail := func(status int, err error) int {
		if err == nil {
			return 0
		}
		_, _ = fmt.Fprintln(std.err, "formbench:", err)
		return status
	}
	if len(args) == 1 {
		if known, err := process.Main(ctx, args[0], std.in, std.out, std.err); known {
			return fail(1, err)
		}
	}
	opts, err := bench.ParseOptions(args, std.err)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return fail(2, err)
	}
	if opts.Render != "" {
		return fail(1, render(&opts, std.out))
	}
	return fail(1, runBench(ctx, &bench.Bench{Options: opts, Log: std.err}, std.out))
}
