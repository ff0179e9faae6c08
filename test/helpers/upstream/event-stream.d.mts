export function message(headers: Record<string, string>, payload: object): Buffer
