// The endpoint is asked here and nowhere else.

const tokenKey = "millrace.token";

/** Refused is an answer that is no success, with its status and what it says. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** keepToken has a token sent with each request from now on, until the tab is closed. */
export function keepToken(token) {
  if (token) sessionStorage.setItem(tokenKey, token);
  else sessionStorage.removeItem(tokenKey);
}

/** hasToken reports whether there is one to send. */
export const hasToken = () => sessionStorage.getItem(tokenKey) !== null;

/** get asks for something below /api/v1/. */
export const get = (path, query = {}) => request("GET", path, query);

/** post changes something. */
export const post = (path, body) => request("POST", path, {}, body);

/** change is post for a job: pause, resume, seek, drain. */
export const change = (job, what, body) => post(`jobs/${encodeURIComponent(job)}/${what}`, body);

async function request(method, path, query, body) {
  const url = new URL("/api/v1/" + path, location.origin);
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);

  const headers = {};
  const token = sessionStorage.getItem(tokenKey);
  if (token) headers.Authorization = "Bearer " + token;
  if (body !== undefined) headers["Content-Type"] = "application/json";

  const response = await fetch(url, {
    method, headers, body: body === undefined ? undefined : JSON.stringify(body),
    cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(30000),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, answer.error || `the endpoint answers ${response.status}`);

  return answer;
}
