"""Adapters from the APIs of controller, replica and views to the APIs of listeners."""

from kvorum.broker.view_api import ViewApi
from kvorum.controller.api import ControllerApi
from kvorum.metadata.api import BY_CONTROLLER
from kvorum.node.broker.forwarding_manager import read_response
from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.requesters import basis_of_view, requester_of, view_of, view_of_controller
from kvorum.node.raft import RaftStoppedError
from kvorum.node.raft.raft_api import RaftApi
from kvorum.node.services import (
    BrokerApi,
    BrokerServices,
    ControllerListenerApi,
    ControllerServices,
)
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import EncodedResponse, HandlerResponse
from kvorum.wire.primitives import Message


def decided(api: ControllerApi[Message, Message]) -> ControllerListenerApi[Message]:
    """Return the API that this node's controller answers, once its records are committed."""

    async def answer(request: IncomingRequest[Message], controller: ControllerServices) -> Message:
        if api.admit is not None:
            refusal = api.admit(request.body, requester_of(request))
            if refusal is not None:
                return refusal
        if api.is_for_any_controller:
            return controller.quorum_controller.read(request)
        return await controller.quorum_controller.write(request, api)

    quota = api.mutation_quota
    return ControllerListenerApi(
        request=api.request,
        permission=api.permission,
        answer=answer,
        refuse=api.refuse,
        form_problem=api.form_problem,
        throttle_time_ms=None if quota is None else quota.throttle_time_ms,
    )


def forwarded(api: ControllerApi[Message, Message]) -> BrokerApi[Message]:
    """Return the API that a broker forwards, unchanged, to the active controller."""
    quota = api.mutation_quota

    async def answer(request: IncomingRequest[Message], broker: BrokerServices) -> HandlerResponse:
        if api.admit is not None and api.is_admitted_by_brokers:
            refusal = api.admit(request.body, requester_of(request))
            if refusal is not None:
                return refusal
        frame = await broker.forwarder.forward(request)
        if quota is None:
            return EncodedResponse(frame)
        return EncodedResponse(frame, quota.throttle_time_ms(read_response(request, frame)))

    return BrokerApi(
        request=api.request,
        permission=api.permission if api.is_admitted_by_brokers else BY_CONTROLLER,
        answer=answer,
        refuse=api.refuse,
        form_problem=api.form_problem,
    )


def of_replica(api: RaftApi[Message]) -> ControllerListenerApi[Message]:
    """Return the API that the replica of the metadata log answers."""

    async def answer(request: IncomingRequest[Message], controller: ControllerServices) -> Message:
        if api.admit is not None:
            refusal = api.admit(controller.loader.published, request.body)
            if refusal is not None:
                return refusal
        response = await _ask_replica(request, controller)
        if api.complete is not None:
            reassignment = controller.reassignment.describe()
            if reassignment is not None:
                api.complete(response, reassignment)
        return response

    return ControllerListenerApi(
        request=api.request, permission=api.permission, answer=answer, refuse=api.refuse
    )


def forwarded_to_replica(api: RaftApi[Message]) -> BrokerApi[Message]:
    """Return the API that a broker forwards, unchanged, to the leader of the quorum."""

    async def answer(request: IncomingRequest[Message], broker: BrokerServices) -> EncodedResponse:
        return EncodedResponse(await broker.forwarder.forward(request))

    return BrokerApi(
        request=api.request, permission=BY_CONTROLLER, answer=answer, refuse=api.refuse
    )


def viewed_by_broker(api: ViewApi[Message]) -> BrokerApi[Message]:
    """Return the API that a broker answers from its own metadata."""

    async def answer(request: IncomingRequest[Message], broker: BrokerServices) -> Message:
        return api.answer(broker.loader.published, request.body, view_of(request, broker))

    return BrokerApi(
        request=api.request,
        permission=api.permission,
        answer=answer,
        refuse=api.refuse,
        form_problem=api.form_problem,
        basis=basis_of_view,
    )


def viewed_by_controller(api: ViewApi[Message]) -> ControllerListenerApi[Message]:
    """Return the API that a controller answers from the committed metadata that it knows."""

    async def answer(request: IncomingRequest[Message], controller: ControllerServices) -> Message:
        view = view_of_controller(request, controller)
        return api.answer(controller.loader.published, request.body, view)

    return ControllerListenerApi(
        request=api.request,
        permission=api.permission,
        answer=answer,
        refuse=api.refuse,
        form_problem=api.form_problem,
        basis=lambda controller: (controller.loader.published,),
    )


async def _ask_replica(
    request: IncomingRequest[Message], controller: ControllerServices
) -> Message:
    """Return the replica's response; a stopped replica closes the connection."""
    try:
        return await controller.raft.handle_request(
            request.body, version=request.version, listener_name=request.listener
        )
    except RaftStoppedError as error:
        raise CloseConnectionError(str(error)) from error
