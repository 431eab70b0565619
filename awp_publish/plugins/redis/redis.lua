-- One run: KEYS has one key for each step, ARGV the deadline in seconds of our clock, after which nothing is done, and
-- then the steps one after the other, each a letter and its arguments.
-- Answers {index of the step that did not hold or -1, what each step saw ...}. Milliseconds, but for queues: seconds.
--   C most ms    L    A value ms    S old new has_new ms    Q member delay most    U member
--   R amount most ms
-- A `most` of -1 is none.
local ARGUMENTS = {C = 2, L = 0, A = 2, S = 4, Q = 3, U = 1, R = 3}
local seen, at = {-1}, 2

local time = redis.call("TIME")
local now = time[1] + time[2] / 1000000
if now > tonumber(ARGV[1]) then
  return redis.error_reply("LATE the run came after its deadline")
end

local function keep(key, value, ms)
  if tonumber(ms) > 0 then
    redis.call("SET", key, value, "PX", ms)
  else
    redis.call("DEL", key)
  end
end

-- One more event, at once. A window that would last longer than `ms` is one from before the clock was set back.
local function count(key, most, ms)
  local events = tonumber(redis.call("GET", key) or 0)
  local left = events > 0 and redis.call("PTTL", key) or 0
  if left <= 0 or left > tonumber(ms) then
    events, left = 0, 0
  end
  if events >= tonumber(most) then
    return false, {events, left}
  end
  if events == 0 then
    keep(key, 1, ms)
    left = tonumber(ms)
  else
    redis.call("INCR", key)
  end
  return true, {events + 1, left}
end

for step, key in ipairs(KEYS) do
  local kind, holds, saw = ARGV[at], true, false
  if kind == "C" then
    holds, saw = count(key, ARGV[at + 1], ARGV[at + 2])
  elseif kind == "L" or kind == "A" or kind == "S" then
    saw = redis.call("GET", key)
    if kind == "A" then holds = not saw end
    if kind == "S" then holds = saw == ARGV[at + 1] end
  elseif kind == "Q" and ARGV[at + 3] ~= "-1" then
    local others, most = redis.call("ZCARD", key), tonumber(ARGV[at + 3])
    if redis.call("ZSCORE", key, ARGV[at + 1]) then others = others - 1 end
    holds, saw = others < most, {others, 0}
  elseif kind == "R" then
    local total, amount, most = tonumber(redis.call("GET", key) or 0), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])
    holds, saw = most < 0 or amount <= 0 or total + amount <= most, {total, 0}
  end
  seen[step + 1] = saw
  if not holds then
    seen[1] = step - 1
    return seen
  end
  at = at + 1 + ARGUMENTS[kind]
end

at = 2
for _, key in ipairs(KEYS) do
  local kind = ARGV[at]
  if kind == "A" then
    keep(key, ARGV[at + 1], ARGV[at + 2])
  elseif kind == "S" and ARGV[at + 3] == "1" then
    keep(key, ARGV[at + 2], ARGV[at + 4])
  elseif kind == "S" then
    redis.call("DEL", key)
  elseif kind == "Q" then
    redis.call("ZADD", key, string.format("%.6f", now + ARGV[at + 2]), ARGV[at + 1])
  elseif kind == "U" then
    redis.call("ZREM", key, ARGV[at + 1])
  elseif kind == "R" then
    local total = math.max(tonumber(redis.call("GET", key) or 0) + ARGV[at + 1], 0)
    keep(key, string.format("%.0f", total), total > 0 and ARGV[at + 3] or 0)
  end
  at = at + 1 + ARGUMENTS[kind]
end
return seen
