import type { IDataObject, IExecuteFunctions, INodeExecutionData } from 'n8n-workflow'
import { NodeOperationError, tryToParseDateTime } from 'n8n-workflow'

import { readAnswers } from '../shared/answers'
import { download, upload } from '../shared/files'
import { idempotencyKey } from '../shared/idempotency'
import { simplifyResponse } from '../shared/simplify'
import { json, list } from '../shared/transport'

type Operation = (context: IExecuteFunctions, index: number) => Promise<INodeExecutionData[]>

// What the node does for an item, by resource and operation.
export const operations: Record<string, Operation> = {
  'campaign.get': async (context, index) => one(json(context, 'GET', campaignPath(context, index), { itemIndex: index })),

  'campaign.getAll': async (context, index) => {
    const search = context.getNodeParameter('search', index) as string
    return many(list(context, '/v1/campaigns', search ? { search } : {}, limitOf(context, index), index))
  },

  'response.create': simplified(async (context, index) => {
    const { firstName, lastName, idempotencyKey: key } = collection(context, 'createOptions', index)
    return one(
      json(context, 'POST', `${campaignPath(context, index)}/responses`, {
        body: {
          user: { email: optional(context, 'email', index), firstName, lastName },
          responses: readAnswers(context, index),
        },
        headers: { 'Idempotency-Key': idempotencyKey(context, index, key as string) },
        itemIndex: index,
      }),
    )
  }),

  'response.get': simplified(async (context, index) =>
    one(json(context, 'GET', responsePath(context, index), { itemIndex: index })),
  ),

  'response.getAll': simplified(async (context, index) => {
    const path = `${campaignPath(context, index)}/responses`
    return many(list(context, path, filtersOf(context, index), limitOf(context, index), index))
  }),

  'response.updateStatus': simplified(async (context, index) =>
    one(
      json(context, 'PATCH', responsePath(context, index), {
        body: { status: text(context, 'status', index) },
        itemIndex: index,
      }),
    ),
  ),

  'response.addComment': async (context, index) => {
    const { idempotencyKey: key } = collection(context, 'commentOptions', index)
    return one(
      json(context, 'POST', `${responsePath(context, index)}/comments`, {
        body: { body: text(context, 'comment', index) },
        headers: { 'Idempotency-Key': idempotencyKey(context, index, key as string) },
        itemIndex: index,
      }),
    )
  },

  'file.upload': async (context, index) => one(upload(context, `${responsePath(context, index)}/files`, index)),

  'file.download': async (context, index) => [await download(context, index)],

  'file.getAll': async (context, index) =>
    many(list(context, `${responsePath(context, index)}/files`, {}, limitOf(context, index), index)),
}

// Makes what an operation returns simpler, where the node says so.
function simplified(operation: Operation): Operation {
  return async (context, index) => {
    const items = await operation(context, index)
    if (!context.getNodeParameter('simple', index)) return items
    return items.map((item) => ({ ...item, json: simplifyResponse(item.json) }))
  }
}

async function one(item: Promise<IDataObject>): Promise<INodeExecutionData[]> {
  return [{ json: await item }]
}

async function many(items: Promise<IDataObject[]>): Promise<INodeExecutionData[]> {
  return (await items).map((item) => ({ json: item }))
}

// An expression that finds nothing must not become the text "undefined".
function text(context: IExecuteFunctions, name: string, index: number): string {
  const value = context.getNodeParameter(name, index)
  if (isNothing(value)) throw missing(context, name, index)
  return String(value)
}

// A field that may be empty.
function optional(context: IExecuteFunctions, name: string, index: number): string {
  return context.getNodeParameter(name, index) === '' ? '' : text(context, name, index)
}

function isNothing(value: unknown): boolean {
  return value === null || typeof value === 'object' || /^(undefined|null|\[object Object\])?$/.test(String(value).trim())
}

function missing(context: IExecuteFunctions, what: string, index: number): NodeOperationError {
  return new NodeOperationError(context.getNode(), `No ${what} is given`, {
    description: `Give a ${what}, or check the expression.`,
    itemIndex: index,
  })
}

function collection(context: IExecuteFunctions, name: string, index: number): IDataObject {
  return context.getNodeParameter(name, index, {}) as IDataObject
}

function campaignPath(context: IExecuteFunctions, index: number): string {
  const campaign = context.getNodeParameter('campaign', index, '', { extractValue: true })
  return `/v1/campaigns/${segment(context, campaign, 'campaign', index)}`
}

function responsePath(context: IExecuteFunctions, index: number): string {
  const response = context.getNodeParameter('responseUuid', index)
  return `${campaignPath(context, index)}/responses/${segment(context, response, 'response', index)}`
}

// Without a name, the path would be that of the list.
function segment(context: IExecuteFunctions, value: unknown, what: string, index: number): string {
  if (typeof value !== 'string' || isNothing(value)) throw missing(context, what, index)
  return encodeURIComponent(value.trim())
}

function limitOf(context: IExecuteFunctions, index: number): number {
  return context.getNodeParameter('returnAll', index)
    ? Infinity
    : (context.getNodeParameter('limit', index) as number)
}

// Returns the filters that are set. Times without a zone are in the zone of the workflow.
function filtersOf(context: IExecuteFunctions, index: number): IDataObject {
  const given = Object.entries(collection(context, 'filters', index))
  const nothing = given.find(([, value]) => value === null || value === undefined)
  if (nothing) throw missing(context, nothing[0], index) // without it, all responses would be listed
  const set = given.filter(([, value]) => value !== '' && !(Array.isArray(value) && value.length === 0))
  return Object.fromEntries(
    set.map(([name, value]) => [
      name,
      /(After|Before)$/.test(name)
        ? tryToParseDateTime(value, context.getTimezone()).toUTC().toISO()
        : value,
    ]),
  )
}
