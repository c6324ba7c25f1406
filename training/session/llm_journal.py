"""The agents' journal in the store: every exchange before and after, budgets reserved first, nothing paid twice."""

from __future__ import annotations

from rlgpt.agents.backends import Outcome
from rlgpt.agents.charges import Charge
from rlgpt.agents.errors import BudgetReached
from rlgpt.agents.journal import NOTHING, Answer, Call, Held
from rlgpt.store import event_payloads, events, tables
from rlgpt.store.reader import Reader
from rlgpt.store.row_types import EventRow, LlmCallRow
from rlgpt.store.settings import Settings
from rlgpt.store.spending import spent_today
from rlgpt.store.states import MODEL
from rlgpt.store.writer import Writer
from rlgpt.training.session.budgets import limit
from rlgpt.training.session.replaying import REPLAY

KEPT_ERROR = 2000
"""Characters of an error that a row keeps."""


class StoreJournal:
    """Implements `rlgpt.agents.journal.Journal`. Called from the thread that makes the call."""

    def __init__(self, writer: Writer, reader: Reader, settings: Settings) -> None:
        self._writer, self._reader, self._settings = writer, reader, settings
        self._waited = False

    def recorded(self, step: str, request_hash: str) -> tuple[str, str] | None:
        columns = {"step": step, "request_hash": request_hash, "state": "answered"}
        rows = self._reader.rows(LlmCallRow, columns)
        return (self._reader.text(rows[-1]["reply_hash"]), _fault(rows[-1])) if rows else None

    def learnt(self) -> list[tuple[str, str, str, str]]:
        rows = [
            row
            for row in self._reader.rows(LlmCallRow)
            if row["state"] in ("answered", "failed") and not row["error"].startswith("unused")
        ]
        return [(row["role"], row["step"], row["error"], self._reader.text(row["request_hash"])) for row in rows]

    @staticmethod
    def outcomes(source: Reader, step: str, request_hash: str | None) -> list[Outcome]:
        """How every exchange of that request, or None: of that step, ended in another session, in order."""
        columns = {"step": step} | ({"request_hash": request_hash} if request_hash else {})
        rows = source.rows(LlmCallRow, columns)
        asked = [row for row in rows if request_hash or not row["error"].startswith("unused")]
        return [
            Outcome(
                source.text(row["reply_hash"]) if row["state"] == "answered" else "",
                _fault(row),
                Charge(row["tokens_in"], row["tokens_out"], row["cost"]),
            )
            for row in asked
            if row["state"] != "sent"
        ]

    def own_outcomes(self, step: str, request_hash: str | None) -> list[Outcome]:
        return self.outcomes(self._reader, step, request_hash)

    def reserve(self, call: Call, held: Held = NOTHING) -> None:
        history, budget = self._writer.history, self._settings.budget
        tokens = limit(history, budget, "tokens")
        tokens_spent = history.spent.tokens + held.tokens
        if tokens is not None and tokens_spent + call.reserved_tokens > tokens:
            left = tokens - tokens_spent
            over = f"is used up: {tokens_spent:,.0f} are spent" if left <= 0 else f"leaves {left:,.0f}"
            may = f", and the next call may take {call.reserved_tokens:,}" if call.reserved_tokens else ""
            raise BudgetReached(f"the budget of {tokens:,.0f} tokens {over}{may}")
        if call.reserved is None and not call.cost_told:
            return
        # Of a call whose price comes with its answer the last one may go over; a budget of 0 lets what is free go on.
        cost, reserved = limit(history, budget, "cost"), call.reserved or 0.0
        spent = history.spent.cost + held.cost
        if cost is not None and (spent + reserved > cost or (call.cost_told and spent >= cost > 0)):
            may = f" and the next call may cost {reserved:.4f}" if reserved else ""
            raise BudgetReached(f"the budget of {cost:g} USD is used up: {spent:.4f} are spent{may}")
        costs = reserved > 0 or call.cost_told
        if budget.daily_cost is not None and costs and not self._settings.llm.kind.startswith(REPLAY):
            today = spent_today() + held.cost
            if today + reserved > budget.daily_cost or (call.cost_told and today >= budget.daily_cost > 0):
                raise BudgetReached(
                    f"today's budget of {budget.daily_cost:g} USD over all sessions is reached: {today:.4f} are spent"
                )

    def sent(self, call: Call) -> None:
        with self._writer.transaction(durable=True) as tx:
            tx.add(self._row(call, "sent"))

    def answered(self, call: Call, answer: Answer) -> None:
        row = self._row(call, "answered")
        row.reply_hash = self._writer.text(answer.reply)
        row.error = answer.fault[:KEPT_ERROR]
        row.tokens_in, row.tokens_out, row.cost = answer.tokens_in, answer.tokens_out, answer.cost
        row.seconds = answer.seconds
        self._writer.add(row, durable=True)

    def failed(
        self, call: Call, error: str, seconds: float, charged: tuple[int, int, float | None] = (0, 0, 0.0)
    ) -> None:
        row = self._row(call, "failed")
        row.error, row.seconds = error[:KEPT_ERROR], seconds
        row.tokens_in, row.tokens_out, row.cost = charged
        self._writer.add(row, durable=True)

    # ---- what the model tries before it answers -------------------------------------------------------
    def probes_left(self, step: str) -> int:
        others = sum(count for of_step, count in self._writer.history.probes.copy().items() if of_step != step)
        return max(0, self._settings.llm.probes_per_session - others)

    def probed(self, step: str, request_hash: str, number: int) -> str | None:
        if step not in self._writer.history.probes:
            return None
        for row in self._reader.rows(EventRow, {"kind": event_payloads.kind_of(events.Probed)}):
            event = event_payloads.read_event(row["kind"], row["payload"])
            if isinstance(event, events.Probed) and (event.step, event.request_hash, event.number) == (
                step, request_hash, number,
            ):  # fmt: skip
                return event.told
        return None

    def add_probe(self, step: str, request_hash: str, number: int, tool: str, told: str, env_steps: int) -> None:
        self._writer.event(events.Probed(step, request_hash, number, tool, told, env_steps))

    # ---- a server that is away ----------------------------------------------------------------------
    def waiting(self, role: str, why: str) -> None:
        with self._writer.transaction(durable=True) as tx:  # looked at inside it: the loop's thread may pause just now
            history = self._writer.history
            if history.waiting_for == MODEL or history.pause_requested or history.stop_requested:
                return
            tx.event(events.Waiting(MODEL, role, why))
        self._waited = True

    def back(self) -> None:
        self._over("info", f"{MODEL} is back", {})

    def given_up(self, role: str, why: str) -> None:
        self._over("warning", f"{MODEL} is not waited for any longer", {"role": role, "why": why})

    def _over(self, level: str, event: str, fields: dict[str, str]) -> None:
        """After a wait, if there was one: a pause may have come between."""
        with self._writer.transaction(durable=True) as tx:
            if self._waited:
                tx.log(level, event, **fields)
            if self._writer.history.waiting_for == MODEL:
                tx.event(self._writer.history.phase)
        self._waited = False

    def _row(self, call: Call, state: str) -> tables.LlmCall:
        return tables.LlmCall(
            call=call.id,
            step=call.step,
            role=call.role,
            model=call.model,
            state=state,
            request_hash=self._writer.text(call.request),
            try_number=call.try_number,
            reserved=call.reserved,
        )


def _fault(row: LlmCallRow) -> str:
    """Why there is no answer, or none of use; of one that nobody waited for that was never looked at."""
    unused = row["state"] == "answered" and row["error"].startswith("unused")
    return "" if unused else row["error"]
