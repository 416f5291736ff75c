import type { IWebhookFunctions } from 'n8n-workflow'

type Answer = ReturnType<IWebhookFunctions['getResponseObject']>

// What became of an event: the answer while it is under way, then whether it was a good one.
interface Outcome {
  answer?: Answer
  accepted: boolean
}

// How many events a trigger remembers.
const limit = 1000

// The outcomes of events, by the trigger and the identifier of the event. They are kept in memory rather than in n8n's
// static data: that is written as a whole, so that two deliveries at the same time, or one during a new subscription,
// would overwrite each other, and with it the secret of the webhook.
const triggers = new Map<string, Map<string, Outcome>>()

// Tells whether an event was here before, and takes note of it. It counts as accepted only when n8n has answered 2xx,
// which it does once the execution is recorded; an event whose execution could not be started is new when it comes again.
export function remember(
  trigger: string,
  event: string,
  answer: Answer,
): 'new' | 'starting' | 'accepted' {
  let outcomes = triggers.get(trigger)
  if (!outcomes) triggers.set(trigger, (outcomes = new Map()))
  const earlier = outcomes.get(event)
  if (earlier?.answer && !earlier.answer.headersSent) return 'starting'
  if (earlier && isAccepted(earlier)) return 'accepted'

  const outcome: Outcome = { answer, accepted: false }
  // The answer refers to the request and its body, which must not stay. Where the sender has hung up before the answer
  // it never finishes; then it is asked when the event comes again.
  answer.once('finish', () => {
    outcome.accepted = isAccepted(outcome)
    outcome.answer = undefined
  })
  outcomes.delete(event)
  outcomes.set(event, outcome)
  const oldest = outcomes.keys().next()
  if (outcomes.size > limit && !oldest.done) outcomes.delete(oldest.value)
  return 'new'
}

function isAccepted({ answer, accepted }: Outcome): boolean {
  return answer ? answer.statusCode < 300 : accepted
}
