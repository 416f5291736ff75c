import { createHash } from 'node:crypto'
import type { IExecuteFunctions } from 'n8n-workflow'

// Returns the Idempotency-Key of the request that a node makes for an item: the same when n8n tries the step again within
// an execution ("Retry On Fail"), another one for each item, each turn of a loop and each execution. The instance and the
// workflow are part of it, since two installations count their executions alike. It is hashed because identifiers may
// hold characters that a header must not.
export function idempotencyKey(context: IExecuteFunctions, index: number, own?: string): string {
  if (own) return own
  const parts = [
    context.getInstanceId(),
    context.getWorkflow().id,
    context.getExecutionId(),
    context.getNode().id,
    context.getWorkflowDataProxy(index).$runIndex,
    index,
  ]
  return `n8n-${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`
}
