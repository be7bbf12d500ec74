/** What is wrong with a result, as a phrase for the log. */
export class Refusal extends Error {}
