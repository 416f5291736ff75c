package storagetest

// goldenTests say what the contract means by example. They also guard the memory store, which the model takes as the
// oracle.
func goldenTests() []test {
	return []test{
		{"existing event", testEventTwice},
		{"addresses in any case", testAddresses},
		{"times are kept to the microsecond", testTimes},
		{"inputs are copied", testInputsCopied},
		{"barred files", testBarFiles},
		{"many file identifiers", testManyFileIDs},
		{"leased delivery is not claimed", testLease},
		{"kinds are claimed in order", testClaimKinds},
		{"late deliveries can go first", testClaimLateFirst},
		{"unknown endpoints get nothing", testClaimNobody},
		{"lost lease can't finish", testFencing},
		{"expired lease can finish until claimed again", testLateFinish},
		{"a large batch of outcomes", testLargeBatch},
		{"failed ones in order and in steps", testRedeliverPace},
		{"notices are leased oldest first", testFailureLease},
		{"leased digest is not claimed", testDigestLease},
		{"every webhook gets its digest in turn", testDigestLimit},
		{"events of all accounts", testWholeFeed},
		{"newest events among test events", testRecentBehindTests},
		{"newest events end at a byte limit", testEventBytes},
		{"pruning by age", testPruneAge},
		{"records of others are not pruned", testForget},
		{"erased responses of several campaigns", testEraseCampaigns},
		{"quotas of many windows", testQuotaLongList},
		{"identity is stable", testIdentityStays},
		{"each store has its own identity", testIdentityIsOwn},
	}
}

func isolationTests() []test {
	return []test{
		{"calls with existing records succeed", testCallsSucceed},
		{"foreign and unknown records are not found", testIsolation},
		{"ID with a NUL", testNULID},
		{"unknown names, hashes and deliveries", testUnknownOthers},
	}
}

func closeTests() []test {
	return []test{
		{"every call fails after Close", testUseAfterClose},
		{"Close during calls", testCloseDuringCalls},
	}
}

func cancelTests() []test {
	return []test{
		{"context ended before the call", testCancelledBefore},
		{"context ends during creates", testCancelDuringKeyed},
		{"context ends during updates", testCancelDuringUpdate},
		{"context ends during calls about files", testCancelDuringFiles},
	}
}

func durabilityTests() []test {
	return []test{
		{"records survive Close", testSurvivesClose},
		{"claims survive Close", testClaimsSurviveClose},
		{"feed positions survive Close", testFeedSurvivesClose},
		{"acknowledged writes survive Close", testAcknowledgedSurvives},
	}
}

// concurrencyTests also wait for work.
func concurrencyTests() []test {
	tests := []test{
		{"concurrent creates succeed", testManyResponses},
		{"all calls at once", testEverythingAtOnce},
		{"failures fail alone", testFailuresAmongGood},
		{"reads get their own records", testManyReads},
		{"responses are counted while their campaign changes", testCountWhileUpdating},
		{"keys in grouped creates", testKeysAmongCreates},
		{"workers that die, release and come late", testWorkers},
		{"one of many outcomes wins", testFinishRace},
		{"failed ones are redelivered once", testRedeliverFailedRace},
		{"each failure is in one digest", testDigestRace},
		{"erasures count each record once", testEraseTogether},
		{"nothing is left of erased responses", testEraseBeside},
		{"no session is left", testEndBesideRedeem},
		{"earlier work ends the wait", testWaitAfterCommit},
		{"redelivery ends the wait", testWaitAfterRedeliver},
		{"concurrent work ends the wait", testWaitDuringCommit},
		{"context ends the wait", testWaitCancelled},
	}
	for _, r := range races() {
		tests = append(tests, test{r.name, func(w *world) { r.run(w, []Store{w.store}) }})
	}
	return tests
}

func handleTests() []test {
	tests := []test{{"both have the same identity", testHandlesIdentity}, {"writes are visible through both", testHandlesSee}}
	for _, r := range races() {
		tests = append(tests, test{r.name, func(w *world) { r.run(w, []Store{w.store, w.reopen(w.T, w.store)}) }})
	}
	return tests
}

// A race runs concurrent calls through stores over the same data.
type race struct {
	name string
	run  func(w *world, stores []Store)
}

func races() []race {
	return []race{
		{"no update is lost", (*world).wantIncrements},
		{"limits and unique values hold", (*world).wantLimits},
		{"each delivery is claimed once", func(w *world, stores []Store) {
			c, hooks := w.endpoints(8)
			for range 50 {
				w.addResponse(&c)
			}
			w.wantClaimedOnce(stores, hooks, 50*len(hooks))
		}},
		{"each notice is leased once", func(w *world, stores []Store) { w.wantLeasedOnce(stores, w.addFailures(60)) }},
		{"readers of the feed miss nothing", (*world).wantFollowed},
		{"changes of a response come in order", (*world).wantChangesInOrder},
		{"identifier is used or barred", (*world).wantFileOrBar},
		{"no file is left without a response", (*world).wantNoStrayFiles},
		{"one of many calls with a key wins", (*world).wantOneOfMany},
		{"concurrent quota counts add up", (*world).addTogether},
		{"link signs in once", (*world).redeemTogether},
	}
}
