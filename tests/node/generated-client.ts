// What a user of `openapi-typescript` writes: typed calls that manage and publish. `tsc` checks it against
// the description that the server under test serves.

import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type CloudEvent = components["schemas"]["CloudEvent"];
type EventGridEvent = components["schemas"]["EventGridEvent"];

/** Makes a topic with one subscription and answers the topic's key. */
export async function createTopic(
  baseUrl: string,
  adminKey: string,
  topic: string,
  inputSchema: components["schemas"]["Schema"],
  endpoint: string,
): Promise<string> {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${adminKey}` } });
  const path = { topic };
  const subscriptions = { all: { endpoint: { url: endpoint } } };
  const made = await client.PUT("/topics/{topic}", {
    params: { path },
    body: { inputSchema, subscriptions },
  });
  if (made.error) throw new Error(made.error.detail ?? made.error.title);
  const keys = await client.GET("/topics/{topic}/keys", { params: { path } });
  if (keys.error) throw new Error(keys.error.detail ?? keys.error.title);
  return keys.data.key1;
}

/** Publishes events with the topic's key; the problem's member where they are refused. */
export async function publish(
  baseUrl: string,
  key: string,
  topic: string,
  body: CloudEvent | CloudEvent[] | EventGridEvent[],
): Promise<string | null | undefined> {
  const client = createClient<paths>({ baseUrl, headers: { "aeg-sas-key": key } });
  const header = { "Posthaste-Time-To-Live": "PT10M" };
  const { error } = await client.POST("/topics/{topic}/events", {
    params: { path: { topic }, header },
    body,
  });
  return error?.member;
}

/** The names of all topics. */
export async function topicNames(baseUrl: string, adminKey: string): Promise<string[]> {
  const client = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${adminKey}` } });
  const listed = await client.GET("/topics");
  if (listed.error) throw new Error(listed.error.detail ?? listed.error.title);
  return listed.data.topics.map((topic) => topic.name);
}
