import type { IDataObject, IPollFunctions } from 'n8n-workflow'

import { baseUrl, json, refusalOf, request } from './transport'

// What a poll gives to the workflow at most; the rest comes with the next one.
const mostEvents = 1000
const samples = 3

interface FeedPage {
  items: IDataObject[]
  nextCursor: string
  more: boolean
}

// Where we are in the feed, and in whose: a cursor for one campaign is none for another.
interface Position {
  cursor?: string
  of?: string
}

// Returns the events since the last time, oldest first. The first time there are none: what happens from now on counts.
export async function newEvents(this: IPollFunctions): Promise<IDataObject[]> {
  const position = this.getWorkflowStaticData('node') as Position
  const of = `${await baseUrl(this)} ${wanted.call(this).campaignUuid ?? ''}`
  if (!position.cursor || position.of !== of) {
    Object.assign(position, { of, cursor: await endOfFeed.call(this) })
    return []
  }
  const found: IDataObject[] = []
  let cursor = position.cursor
  for (let more = true; more && found.length < mostEvents; ) {
    const page: FeedPage | undefined = await pageAfter.call(this, cursor, mostEvents - found.length)
    if (!page) {
      cursor = await endOfFeed.call(this)
      this.logger.warn(
        `"${this.getNode().name}": the Forms Campaign Service does not know our place in its events any more; ` +
          'the key is of another account, or the service has begun anew. Events from now on start the workflow.',
      )
      break
    }
    found.push(...page.items)
    ;({ nextCursor: cursor, more } = page)
  }
  position.cursor = cursor
  return found
}

// Returns the newest events, to show what they look like.
export async function sampleEvents(this: IPollFunctions): Promise<IDataObject[]> {
  const query = { ...wanted.call(this), order: 'desc', limit: samples }
  return (await json<FeedPage>(this, 'GET', '/v1/events', { query })).items
}

function wanted(this: IPollFunctions): { event: string[]; campaignUuid?: string } {
  const event = this.getNodeParameter('events') as string[]
  const campaignUuid = String(this.getNodeParameter('campaign', '', { extractValue: true }) || '')
  return { event, ...(campaignUuid && { campaignUuid }) }
}

// Returns undefined when the service does not know the cursor.
async function pageAfter(this: IPollFunctions, cursor: string, limit: number): Promise<FeedPage | undefined> {
  const query = { ...wanted.call(this), cursor, limit }
  const answer = await request(this, 'GET', '/v1/events', { query, accept: [400] })
  if (answer.statusCode !== 400) return answer.body as unknown as FeedPage
  if ((answer.body as IDataObject).code === 'invalid_cursor') return undefined
  throw refusalOf(this, answer)
}

// Cursors do not depend on the types of events; asking for those that are rare skips the others.
async function endOfFeed(this: IPollFunctions): Promise<string> {
  for (let cursor: string | undefined; ; ) {
    const query = { ...wanted.call(this), event: 'signature.completed', limit: mostEvents, ...(cursor && { cursor }) }
    const page: FeedPage = await json<FeedPage>(this, 'GET', '/v1/events', { query })
    if (!page.more) return page.nextCursor
    cursor = page.nextCursor
  }
}
