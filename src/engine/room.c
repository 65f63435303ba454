/* placeholder removed when the room is built */
typedef int engine_room;
