// Package storage puts something around a store ([Around]); its subpackages are the
// stores that keep a service's data, and this page helps to choose one or to write one.
//
// # Choosing
//
//   - [github.com/formsvc/toolkit/storage/sqlite] keeps everything in one file
//     on one machine. Nothing has to be installed or run. Start here.
//   - [github.com/formsvc/toolkit/storage/postgres] keeps everything in a
//     PostgreSQL database that any number of nodes share: for more than one
//     machine, or where there is a database already.
//   - [github.com/formsvc/toolkit/storage/memory] keeps everything until the
//     process ends: for tests, and to read what a store has to do.
//
// The same program works with each of them. What comes back, in which order and
// with which errors is the same; what differs is where the data lies and whether
// it outlives the process. A package that is not imported is not linked in, and
// nor is its driver.
//
// # Writing one
//
// A store implements [github.com/formsvc/toolkit/formsvc.Store], where the contract is, and
// [github.com/formsvc/toolkit/webhook/delivery.Queue], which the delivery engine takes its work from. Both are
// implemented by one type, because the deliveries of an event are written in the
// same unit as the change that raised it.
//
//   - Let [github.com/formsvc/toolkit/storage/storagetest] test it from the
//     first day. It is public, takes any store, and says what is wrong in the
//     terms of the contract. Categories of tests that can't hold are excepted
//     by name and with a reason.
//   - Read the package memory first: it is the contract in plain maps and
//     slices, short enough to be read whole.
//   - Write every method as one unit. [github.com/formsvc/toolkit/formsvc.Change] brings the events;
//     [github.com/formsvc/toolkit/formsvc.Webhook.Listens] says who gets them and [github.com/formsvc/toolkit/formsvc.DeliveryID]
//     under which identifier.
//   - Put the events of an account in the order in which others come to see
//     them, not in that of their times or identifiers: a reader that follows them
//     must miss none that commits late. A store may show an event late; it may never
//     show it behind a reader that has gone on. The events of all accounts together
//     are in such an order, too. Events about one response are in the order of its
//     changes: find their places while the response is locked.
//   - Deliveries, notices and digests are given out on leases. A lease needs a
//     token wherever its holder reports back, and nothing that looks for lost
//     ones: it ends by itself, at a time that the caller names.
//   - Keep the secrets and headers of webhooks encrypted if they lie on a disk.
//   - Make an identity with the store ([github.com/formsvc/toolkit/formsvc.NewID]) and keep it with the data: it is
//     what a blob store is told by whose files it has.
//   - Check texts with [github.com/formsvc/toolkit/formsvc.CheckText] before anything is written, compare
//     them by their bytes, and cut times to microseconds.
//
// What is around a store, to trace it or to measure it, is a function that [Around] calls
// for each method. A decorator that caches is a store too: run the suite on it.
package storage
