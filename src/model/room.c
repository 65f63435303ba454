/* placeholder removed when the room is built */
typedef int model_room;
